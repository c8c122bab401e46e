package s3

import (
	"crypto/rand"
	"regexp"
	"strings"
)

// replicaFolder has an object for each replica that runs.
const replicaFolder = "mlpromote-replicas"

// uploadsFolder holds uploads in progress. No environment can have its name. Its keys have one
// form, so that Sweep takes no other object for a leftover:
//
//	<prefix>/mlpromote-uploads/<identifier of the upload>.<random text>
const uploadsFolder = "mlpromote-uploads"

const (
	uuidPattern = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	textPattern = `[A-Z2-7]{26}` // of rand.Text
)

// newUploadForm returns what matches the keys of uploads, relative to their folder.
func newUploadForm() *regexp.Regexp {
	return regexp.MustCompile(`^(` + uuidPattern + `)\.` + textPattern + `$`)
}

// newUploadKey returns a new unique key for an object of an upload.
func (b *Bucket) newUploadKey(id string) string {
	return b.under(uploadsFolder) + id + "." + rand.Text()
}

// uploadOf returns the upload that a key belongs to. ok is false unless the key has exactly
// the form of an upload's key below this prefix.
func (b *Bucket) uploadOf(key string) (id string, ok bool) {
	name, ok := strings.CutPrefix(key, b.under(uploadsFolder))
	if !ok {
		return "", false
	}
	match := b.uploadForm.FindStringSubmatch(name)
	if match == nil {
		return "", false
	}
	return match[1], true
}

// isOwnFolder reports whether only this program writes below a folder: one of uploads or
// marks, or of blobs of one algorithm.
func (b *Bucket) isOwnFolder(folder string) bool {
	if folder == b.under(uploadsFolder) || folder == b.under(replicaFolder) {
		return true
	}
	name, ok := strings.CutPrefix(folder, b.under("blobs"))
	return ok && (name == "sha256/" || name == "sha512/")
}
