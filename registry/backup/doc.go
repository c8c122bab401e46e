// Package backup keeps copies of a data directory, from which it can be made again.
//
// A backup is a folder. Its blobs are stored as a data directory stores them, so that a
// blob is copied once for all snapshots and another backup only adds. A snapshot is a
// folder of its own:
//
//	blobs/ALGORITHM/XX/HEX           the content that snapshots name
//	snapshots/TIME/registry.db       the catalog at one instant: names, heads, holds, history, tokens
//	snapshots/TIME/content           digest and size of all that it names, a line for each
//	snapshots/TIME/files/...         what the operator wrote: environments.yaml, public keys, ...
//	snapshots/TIME/snapshot.json     the digests of these files; written last
//
// A folder without snapshot.json is a snapshot that was broken off, and does not count.
package backup
