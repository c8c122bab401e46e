// Package container runs driver programs in container images, by podman or docker,
// whichever is there. The image brings the interpreter and the packages; the code of the
// driver is ours, and is mounted. The container has no network and no capabilities, its
// own file system and all inputs are read-only, and every path of the job is the same
// inside as outside.
package container
