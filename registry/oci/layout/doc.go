// Package layout writes and reads a saved release: an OCI image layout (image-spec,
// image-layout.md) in a tar archive, which tools such as oras and skopeo read.
//
// There is exactly one archive for a content: oci-layout, index.json, and blobs in order of their
// names, each in a ustar header without times or owners. [Open] accepts no other bytes. So links,
// sparse files, two files of one name, padding and other places to hide something do not have to
// be found one by one.
package layout
