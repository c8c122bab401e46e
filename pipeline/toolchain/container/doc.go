// Package container runs driver programs in container images, with podman or docker. The image
// has the interpreter and the packages. The driver's code is embedded in mlpromote and mounted.
// The container has no network and no capabilities. Its own file system and all inputs are
// read-only. Folders that a job reads and writes have the same path inside and outside; its
// temporary folder is /tmp.
package container
