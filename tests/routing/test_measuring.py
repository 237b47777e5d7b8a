from gateway.routing.measuring import characters


def test_texts_keys_and_other_values_count():
    assert characters({"ab": ["cde", 1, None, True], "f": {}}) == 2 + 3 + 3 + 1


def test_depth_costs_nothing():
    value: object = "x"
    for _ in range(100_000):
        value = [value]
    assert characters(value) == 1
