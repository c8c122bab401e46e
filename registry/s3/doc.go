// Package s3 keeps content-addressed bytes in a bucket of an S3-compatible object store,
// which processes on any number of machines share.
//
// A [Bucket] lays them out as <prefix>/blobs/<algorithm>/<first two hex digits>/<hex>.
// An object appears there in one step, by a PUT whose bytes were hashed before, by
// completing a multipart upload when all of it was hashed, or by a copy inside the
// store. So a key under blobs/ always has whole and right bytes, whatever crashed. What
// does not fit into one part of [partBytes] passes through memory part by part.
//
// Content that arrives in pieces becomes a multipart upload under mlpromote-uploads/. Its last
// bytes, when too few for a part, are in an object beside it or in the record of the upload:
// [Uploads]. [Uploads.Sweep] removes what killed writers leave there. The object
// mlpromote-owner.json names the catalog that the content belongs to.
package s3
