"""What a store's url means, and what it may not hold."""

import pytest

from gateway.config.locations import Location, location


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("memory://", Location("memory")),
        ("file:///var/lib/mcp-gateway", Location("file", "/var/lib/mcp-gateway")),
        ("file:///with%20space/", Location("file", "/with space/")),
        ("file:///C:/content", Location("file", "C:/content")),
        ("s3://bucket", Location("s3", "bucket")),
        ("s3://bucket/a/b/", Location("s3", "bucket", "a/b")),
        (
            "s3://bucket/a?endpoint=http://127.0.0.1:9000&Region=eu-west-1",
            Location("s3", "bucket", "a", {"endpoint": "http://127.0.0.1:9000", "region": "eu-west-1"}),
        ),
        ("s3://bucket?skip_signature=true", Location("s3", "bucket", "", {"skip_signature": "true"})),
        ("s3://b?sse_kms_key_id=arn", Location("s3", "b", "", {"sse_kms_key_id": "arn"})),
        ("gcs://bucket/p", Location("gs", "bucket", "p")),
        ("azure://container?account_name=me", Location("az", "container", "", {"account_name": "me"})),
    ],
)
def test_a_url_is_read(url, meant):
    assert location(url) == meant


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "must begin with one of"),
        ("/var/lib", "must begin with one of"),
        ("ftp://host/x", "must begin with one of"),
        ("memory:", "must begin with one of"),
        ("memory://host", "has none"),
        ("memory://?a=b", "no options"),
        ("file://", "names no folder"),
        ("file:///", "names no folder"),
        ("file://relative/folder", "names no folder"),
        ("file:///x?mode=1", "no options"),
        ("s3://", "names no bucket"),
        ("s3:///prefix", "names no bucket"),
        ("s3://buc ket", "names no bucket"),
        ("s3://bucket/a//b", "empty part"),
        ("s3://bucket/../b", "empty part"),
        ("s3://bucket#part", "after '#'"),
        ("s3://hidden:hidden@bucket", "credentials come from the environment"),
        ("s3://hidden@bucket", "credentials come from the environment"),
        ("s3://bucket?access_key_id=hidden", "access_key_id"),
        ("s3://bucket?AWS_SECRET_ACCESS_KEY=hidden", "aws_secret_access_key"),
        ("s3://bucket?session_token=hidden", "session_token"),
        ("az://c?sas_key=hidden", "sas_key"),
        ("az://c?account_key=hidden", "account_key"),
        ("gs://b?service_account_key=hidden", "service_account_key"),
        ("s3://bucket?endpoint=https://me:hidden@host/", "password in endpoint"),
        ("s3://bucket?endpoint=a&endpoint=b", "twice"),
        ("s3://bucket?=b", "with an invalid name"),
        ("s3://[bucket", "is not a url"),
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_repeating_it(url, words):
    with pytest.raises(ValueError) as caught:
        location(url)
    assert words in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory://", "memory://"),
        ("file:///var/lib/x", "file:///var/lib/x"),
        ("file:///C:/x", "file:///C:/x"),
        ("s3://b/p?region=r&sse_kms_key_id=hidden", "s3://b/p?region=r&..."),
        ("s3://b?endpoint=http://h:1&region=r", "s3://b?endpoint=http://h:1&region=r"),
        ("gs://b", "gs://b"),
    ],
)
def test_people_are_shown_where_it_is_and_no_more(url, shown):
    assert location(url).masked == shown
