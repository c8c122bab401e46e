// Package datadir manages a data directory: its locks, its catalog and its content.
//
//	lock                  held by the processes that use the directory
//	catalog               identity of the catalog in PostgreSQL that the directory belongs to
//	storage               URL of the bucket that has the directory's content
//	mlpromote-owner.json  which catalog the content in the directory belongs to
//	restoring             a restore is running or did not finish
//
// Content in a directory and in a bucket is marked in the same way, with a
// [storage.ContentMark]. A catalog, its directory and its content each name the other two.
// [Ownership] lets only the catalog that owns content change it.
package datadir
