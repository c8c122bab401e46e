// Package transfer moves blobs to and from registries over networks that break.
//
// A [Repository] is oras-go's, with two methods of its own. Reading goes on where a
// connection broke, by a Range. Writing is in chunks: after a failure the registry is
// asked how much of the upload it has, and the rest of the chunk is sent. Only a chunk is
// held in memory, whatever the size of the blob.
//
// Registries differ in what they do beside the least. One without ranges sends what came
// once more, and it is passed over. One that takes no chunks gets the blob in one request.
// One that forgets an upload with the connection gets it from the beginning, as long as
// the content can be opened again. In each case the digest is what decides.
package transfer
