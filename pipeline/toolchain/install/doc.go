// Package install makes the environments that Python drivers run in, from lock
// files and nothing else, and keeps them below one directory.
//
// An install is a directory that is named after the digest of its lock, its Python
// and its platform. It is filled in place, since a virtual environment cannot be
// moved, under a file lock; its record is written last and is what makes it count. An
// install that was cut short has none, and is done over. Once there, an install needs
// no network and is never changed.
package install
