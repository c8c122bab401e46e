// Package blob keeps content-addressed bytes in a directory.
//
// A [Dir] lays them out as blobs/<algorithm>/<first two hex digits>/<hex>. Nothing is
// ever written at that place: bytes go to a new file under incoming/ in the same file
// system, are hashed while they pass, fsynced, and renamed, and then every directory
// whose entries changed is fsynced. So a name under blobs/ always has whole and right
// bytes, whatever crashed, and any number of processes can share the directory: two
// writers of one digest write the same file twice and the last rename wins.
//
// What comes in pieces is a file under incoming/ too, until it is whole, and a record
// of how many of its bytes count, which several processes share: [Uploads]. A killed
// writer leaves its file there, which [Uploads.Sweep] and [Dir.Sweep] remove.
package blob
