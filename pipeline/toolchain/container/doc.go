// Package container runs driver programs in container images, with podman or docker. The image
// has the interpreter and the packages. The driver's code is embedded in mlpromote and mounted.
// The container has no network and no capabilities, its own file system and all inputs are
// read-only, and every path of the job is the same inside and outside.
package container
