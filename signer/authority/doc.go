// Package authority asks the authorities of a sigstore for what a signature gets beside it. The file
// timestamps.yaml in a folder of keys names an authority that gives every signature of its
// keys a timestamp (RFC 3161).
//
// Requests follow no redirects, and end with the call that asks. What an authority answers is verified by
// [signer.Sealed], against the roots of environments.yaml.
package authority
