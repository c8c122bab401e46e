// Package backup makes and restores backups of data directories.
//
// A backup is a folder. It stores blobs like a data directory, so that each blob is copied once
// for all snapshots and later backups only add new ones. A snapshot is a folder:
//
//	blobs/ALGORITHM/XX/HEX           the content that snapshots name
//	snapshots/TIME/registry.db       the catalog: names, heads, holds, history, tokens
//	snapshots/TIME/content           digest and size of its content, one per line
//	snapshots/TIME/files/...         files of the operator: environments.yaml, public keys, ...
//	snapshots/TIME/snapshot.json     the digests of these files; written last
//
// A folder without snapshot.json is an unfinished snapshot and is ignored.
package backup
