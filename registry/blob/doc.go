// Package blob stores blobs in a directory.
//
// A [Dir] stores them as blobs/<algorithm>/<first two hex digits>/<hex>. It never writes to
// that path directly. Bytes go to a new file under incoming/ in the same file system, are
// hashed on the way and fsynced. Then the file is renamed, and every changed directory is
// fsynced. So a file under blobs/ is always complete and correct, even after a
// crash. Any number of processes can share the directory: two writers of one digest write the
// same file twice, and the last rename wins.
//
// Content that arrives in pieces is a file under incoming/ until it is complete. A record,
// which several processes share, has the number of its bytes that count: [Uploads]. [Uploads.Sweep]
// and [Dir.Sweep] delete files that killed writers leave there.
package blob
