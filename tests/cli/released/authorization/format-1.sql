-- A state of the authorization server as format 1 had it, with one host that Ann has approved.
CREATE TABLE clients (
    id TEXT PRIMARY KEY, metadata TEXT NOT NULL, secret TEXT, created DOUBLE PRECISION NOT NULL,
    approved DOUBLE PRECISION
);
CREATE TABLE approvals (
    id TEXT PRIMARY KEY, client TEXT NOT NULL, client_name TEXT NOT NULL, redirect TEXT NOT NULL,
    principal TEXT NOT NULL, login TEXT NOT NULL, resource TEXT NOT NULL, scope TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL
);
CREATE TABLE codes (
    hash TEXT PRIMARY KEY, approval TEXT NOT NULL REFERENCES approvals ON DELETE CASCADE,
    redirect_uri TEXT NOT NULL, challenge TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL, used DOUBLE PRECISION
);
CREATE TABLE tokens (
    hash TEXT PRIMARY KEY, approval TEXT NOT NULL REFERENCES approvals ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('access', 'refresh')), scope TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL,
    used DOUBLE PRECISION
);
CREATE INDEX approvals_of_client ON approvals (client);
CREATE INDEX codes_of_approval ON codes (approval);
CREATE INDEX tokens_of_approval ON tokens (approval);
INSERT INTO clients VALUES ('host-1', '{"redirect_uris": ["https://claude.ai/api/mcp/auth_callback"]}', NULL, 1795000000, 1795000001);
INSERT INTO approvals VALUES ('approval-1', 'host-1', 'Claude', 'https://claude.ai/api/mcp/auth_callback', 'ann',
    'passphrase', 'https://tools.example.com/mcp', 'tools', 1795000001, 1795000002, 4102444800);
INSERT INTO tokens VALUES ('0000000000000000000000000000000000000000000000000000000000000000', 'approval-1', 'access',
    'tools', 4102444800, NULL);
PRAGMA user_version = 1;
