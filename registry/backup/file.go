package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
)

// fileMode is of all that a backup writes beside blobs: the catalog has the secrets of
// webhooks and the hashes of tokens.
const fileMode = 0o600

// copyFile makes a durable copy and gives its size and digest.
func copyFile(from, to string) (size int64, d registry.Digest, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, "", err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return 0, "", err
	}
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(out, hash), in)
	if err := errors.Join(err, out.Sync(), out.Close(), syncFolder(filepath.Dir(to))); err != nil {
		return 0, "", err
	}
	return size, registry.Digest("sha256:" + hex.EncodeToString(hash.Sum(nil))), nil
}

// checked copies a file and compares it with what is known of it. Errors: CodeDigest.
func checked(from, to string, want File) error {
	size, d, err := copyFile(from, to)
	if err == nil && (size != want.Size || d != want.Digest) {
		err = registry.Errorf(registry.CodeDigest, "%s has %d bytes with the digest %s, want %d with %s: the backup was damaged", from, size, d, want.Size, want.Digest)
	}
	return err
}

// describe gives size and digest of a file, and makes it durable.
func describe(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	return File{Size: size, Digest: registry.Digest("sha256:" + hex.EncodeToString(hash.Sum(nil)))}, errors.Join(err, f.Sync(), f.Close())
}

// writeFile makes a file that is there as a whole or not at all.
func writeFile(path string, text []byte) error {
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(temporary, path), syncFolder(filepath.Dir(path)))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// copyUntil copies until the end, or until ctx ends.
func copyUntil(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	return io.Copy(w, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
