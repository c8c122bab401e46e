// Package signer turns statements into signed evidence and evidence back into claims.
//
// A statement is the bytes of an in-toto Statement; what it says is not this
// package's business. A [Signer] wraps it in a DSSE envelope inside a sigstore
// bundle v0.3, the form in which cosign v3 stores signatures and attestations, so
// that stock cosign verifies what is signed here and the other way round. A
// [Keyring] picks the key for a role. A [Trust] is the other end: it knows which
// key may say what about which resource, and gives a claim only for a bundle that
// such a key signed.
//
// There is one algorithm: ECDSA on P-256 with SHA-256. It is what cosign's own keys
// use, and with one algorithm nobody can choose a weaker one.
//
// Nothing here needs a network, a transparency log or a clock. A bundle that also
// carries log entries or timestamps is judged by its signature alone.
package signer
