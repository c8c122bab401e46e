// Package install creates the environments in which drivers run, from lock files only, below
// one directory.
//
// An install is a directory named after the digest of its lock file, its Python and its
// platform. Under a file lock, it is filled in place, because a virtual environment cannot be
// moved. Its record is written last: an install without a record is incomplete and is made
// again. A complete install needs no network and never changes.
package install
