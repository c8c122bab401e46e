// Package s3 stores blobs in a bucket of an S3-compatible object store, which processes on any
// number of machines share.
//
// A [Bucket] stores them as <prefix>/blobs/<algorithm>/<first two hex digits>/<hex>. An object
// appears there atomically: by a PUT of bytes that were hashed before, by completing a
// multipart upload after all of it was hashed, or by a copy inside the store. So an object
// under blobs/ is always complete and correct, even after a crash. Larger content passes
// through memory in parts of [partBytes].
//
// Content that arrives in pieces becomes a multipart upload under mlpromote-uploads/. Last
// bytes that are too few for a part are in a separate object or in the record of the upload:
// [Uploads]. [Uploads.Sweep] deletes what killed writers leave there. The object
// mlpromote-owner.json names the catalog that owns the content.
package s3
