package catalog

import "mlpromote.dev/mlpromote/registry/storage"

// ReferrerSize is the size of a referrer's annotations in bytes.
type ReferrerSize struct {
	Digest string
	Bytes  int64
}

// Referrers returns the next page of referrers after a digest. sizes lists what comes after a
// digest, and read returns the manifests after one digest up to another. It reads the sizes
// first, so that a page needs little memory. Manifests that are deleted in between do not end
// the list.
func Referrers(
	after string,
	sizes func(after string) ([]ReferrerSize, error),
	read func(after, last string) ([]storage.Manifest, error),
) ([]storage.Manifest, error) {
	for {
		next, err := sizes(after)
		if err != nil || len(next) == 0 {
			return nil, err
		}
		last := lastOfPage(next)
		found, err := read(after, last)
		if err != nil || len(found) > 0 {
			return found, err
		}
		after = last
	}
}

// lastOfPage returns the last of the digests whose annotations fit in a page. The first always
// does.
func lastOfPage(sizes []ReferrerSize) string {
	last, bytes := sizes[0].Digest, sizes[0].Bytes
	for _, next := range sizes[1:] {
		if bytes += next.Bytes; bytes > storage.ReferrerPage {
			break
		}
		last = next.Digest
	}
	return last
}
