// Package signer turns statements into signed evidence and evidence back into claims.
//
// A statement is the bytes of an in-toto Statement; this package does not interpret its
// predicate. A [Signer] wraps it in a DSSE envelope inside a sigstore bundle v0.3, the format
// of cosign v3 for signatures and attestations. So cosign verifies signatures of this package,
// and the other way round. A [Keyring] selects the key for a role. A [Trust] knows which key may
// sign what about which resource, and returns a claim only for a bundle that such a key signed.
//
// The only algorithm is ECDSA on P-256 with SHA-256. It is what cosign's own keys use, and with
// one algorithm an attacker cannot choose a weaker one.
//
// A bundle has a key or a certificate. A bundle signed by a key needs no log and no timestamp; a timestamp by a
// trusted authority dates the claim, and others are ignored. That of a certificate needs a
// root that vouches for it ([Trust.WithRoots]), and a timestamp or log entry that dates it.
//
// This package needs no network and no clock.
package signer
