// A certified identity provider (npm: oidc-provider) on the loopback, which lets everybody in under the name they give.
// Prints its issuer URL when it listens, and ends with its stdin.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";

import Provider from "oidc-provider";

const key = (type, options, alg) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }),
  alg,
  kid: alg,
  use: "sig",
});
const algorithm = process.argv[2];
const scope = "mcp names";

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "host",
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: ["http://127.0.0.1:1/callback"],
        token_endpoint_auth_method: "none",
      },
      {
        client_id: "gateway",
        client_secret: "the-secret-of-the-gateway",
        grant_types: [],
        redirect_uris: [],
        response_types: [],
      },
    ],
    cookies: { keys: ["for one run only"] },
    features: {
      devInteractions: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({
          audience: resource,
          scope,
          ...(algorithm === "opaque"
            ? { accessTokenFormat: "opaque" }
            : { accessTokenFormat: "jwt", jwt: { sign: { alg: algorithm } } }),
        }),
        useGrantedResource: () => true,
      },
    },
    jwks: {
      keys: [
        key("rsa", { modulusLength: 2048 }, "RS256"),
        key("ec", { namedCurve: "P-256" }, "ES256"),
        key("ed25519", {}, "EdDSA"),
      ],
    },
    pkce: { required: () => true },
    scopes: ["openid", "offline_access", ...scope.split(" ")],
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
process.stdin.on("end", () => process.exit()).resume();
