// Package authority requests the additions to a signature from the authorities of a sigstore: a timestamp
// (RFC 3161), a certificate for a CI identity (Fulcio), an entry in a log (Rekor). Two kinds of files
// in the folder of keys say whom to ask:
//
//	timestamps.yaml    every signature of the folder's keys gets a timestamp
//	ROLE.identity      the role signs with certificates for an identity, and has no key
//
// Requests follow no redirects, end with the call that asks, and carry a token only to the address
// that the file names. What an authority answers is verified by [signer.Sealed], against
// the roots of environments.yaml.
package authority
