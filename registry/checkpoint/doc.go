// Package checkpoint makes and checks signed checkpoints of the history.
//
// The history is a log in the sense of RFC 6962: its leaves are the 32 bytes of the hashes of the
// events, in order. A checkpoint has the number of events and the root of their Merkle tree, in the
// form of C2SP tlog-checkpoint, signed as a C2SP signed-note. Whoever has an older checkpoint finds
// out whether events under it were changed, removed, reordered or replaced since then. A proof, in
// the form of C2SP tlog-proof, shows that a checkpoint covers one event.
//
// Sources: RFC 6962 section 2.1; https://c2sp.org/tlog-checkpoint, https://c2sp.org/signed-note
// and https://c2sp.org/tlog-proof.
//
// All but [Keeper] is pure. A [Keeper] makes the checkpoints of one catalog and keeps them there.
package checkpoint
