// Package transfer moves blobs to and from registries over unreliable networks.
//
// A [Repository] is oras-go's, with two additional methods. Reads continue after a broken
// connection with a Range request. Writes are in chunks: after a failure the client asks the
// registry how much of the upload it has, and sends the rest of the chunk. Only one chunk is in
// memory, whatever the size of the blob.
//
// Registries support different features. If one does not support ranges, it sends the blob
// again, and the client skips bytes that it already has. If one does not support chunks, it gets the
// blob in one request. If one loses an upload when the connection breaks, it gets the blob from
// the beginning, if the content can be opened again. In each case the digest decides whether
// the transfer succeeded.
package transfer
