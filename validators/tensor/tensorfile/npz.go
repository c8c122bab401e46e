package tensorfile

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// ReadNpz reads an npz file of size bytes, a zip archive of npy arrays as written by
// numpy.savez and numpy.savez_compressed. It returns the arrays by name, without ".npy". It
// refuses repeated names, members that are not npy arrays, and encrypted members. It checks
// declared sizes before it unpacks anything, and counts the bytes while unpacking, so that an
// archive with wrong sizes is also stopped.
func ReadNpz(r io.ReaderAt, size int64, limits Limits) (map[string]tensor.Tensor, error) {
	limits = limits.withDefaults()
	files, err := npzMembers(r, size, limits)
	if err != nil {
		return nil, err
	}
	out := make(map[string]tensor.Tensor, len(files))
	left := limits.MaxTotalBytes
	for _, f := range files {
		name := strings.TrimSuffix(f.Name, ".npy")
		perFile := limits
		perFile.MaxTensorBytes = min(limits.MaxTensorBytes, left)
		t, err := readNpzMember(f, perFile)
		if err != nil {
			return nil, fmt.Errorf("npz: %.256q: %w", name, err)
		}
		left -= int64(len(t.Data))
		out[name] = t
	}
	return out, nil
}

// NpzTexts returns the names of the arrays of an npz file that are text, which [ReadNpz] returns as [PackText] stores
// it. It reads headers alone. Errors: as ReadNpz.
func NpzTexts(r io.ReaderAt, size int64, limits Limits) (map[string]bool, error) {
	files, err := npzMembers(r, size, limits.withDefaults())
	if err != nil {
		return nil, err
	}
	texts := make(map[string]bool)
	for _, f := range files {
		name := strings.TrimSuffix(f.Name, ".npy")
		h, err := npzMemberHeader(f)
		if err != nil {
			return nil, fmt.Errorf("npz: %.256q: %w", name, err)
		}
		if h.text != 0 {
			texts[name] = true
		}
	}
	return texts, nil
}

func npzMemberHeader(f *zip.File) (npyHeader, error) {
	r, err := f.Open()
	if err != nil {
		return npyHeader{}, tensor.Errorf(tensor.ErrMalformed, "cannot be unpacked: %v", err)
	}
	defer r.Close()
	head, err := readNpyHeader(r)
	if err != nil {
		return npyHeader{}, err
	}
	return parseNpyHeader(head)
}

func npzMembers(r io.ReaderAt, size int64, limits Limits) ([]*zip.File, error) {
	source := &budgetReader{r: r}
	// The zip reader looks for the end record in the last 65 KiB, independent of the
	// directory's size.
	source.left.Store(limits.MaxHeaderBytes + 1<<17)
	archive, err := zip.NewReader(source, size)
	if err != nil {
		if source.left.Load() < 0 {
			return nil, tensor.Errorf(tensor.ErrLimit, "npz: the archive's directory has more than %d bytes, the limit", limits.MaxHeaderBytes)
		}
		return nil, tensor.Errorf(tensor.ErrMalformed, "npz: not a readable zip archive of numpy.savez: the end of the file is missing, or it is of another kind")
	}
	source.unlimited.Store(true)
	if len(archive.File) > limits.MaxTensors {
		return nil, tensor.Errorf(tensor.ErrLimit, "npz: %d arrays, the limit is %d", len(archive.File), limits.MaxTensors)
	}
	seen := make(map[string]bool, len(archive.File))
	var total uint64
	for _, f := range archive.File {
		if seen[f.Name] {
			return nil, tensor.Errorf(tensor.ErrMalformed, "npz: %.256q occurs twice in the archive", f.Name)
		}
		seen[f.Name] = true
		if err := checkNpzMember(f, limits); err != nil {
			return nil, err
		}
		// At most MaxTensorBytes and a header each, so this does not overflow before the check.
		if total += f.UncompressedSize64; total > uint64(max(limits.MaxTotalBytes, 0))+uint64(len(archive.File))*npyOverhead {
			return nil, tensor.Errorf(tensor.ErrLimit, "npz: the arrays have more than %d bytes, the limit", limits.MaxTotalBytes)
		}
	}
	return archive.File, nil
}

// npyOverhead bounds the bytes of an npy file that are not data.
const npyOverhead = maxNpyHeader + 12

func checkNpzMember(f *zip.File, limits Limits) error {
	const encrypted = 1 // general purpose bit 0, APPNOTE.TXT 4.4.4
	switch {
	case !fs.ValidPath(strings.TrimSuffix(f.Name, "/")) || strings.ContainsRune(f.Name, '\\'):
		return tensor.Errorf(tensor.ErrUnsafe, "npz: %.256q leads out of the archive; save the tensors as safetensors", f.Name)
	case strings.HasSuffix(f.Name, ".pkl"):
		return tensor.Errorf(tensor.ErrUnsafe,
			"npz: %.256q: the archive holds a pickle, which runs code when it is loaded; save the tensors as safetensors", path.Base(f.Name))
	case !strings.HasSuffix(f.Name, ".npy"):
		return tensor.Errorf(tensor.ErrMalformed, "npz: %.256q is not an npy array: want an archive of numpy.savez, in which all names end with .npy", f.Name)
	case f.Flags&encrypted != 0:
		return tensor.Errorf(tensor.ErrUnsupported, "npz: %.256q is encrypted", f.Name)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return tensor.Errorf(tensor.ErrUnsupported, "npz: %.256q has compression method %d: expected stored or deflate", f.Name, f.Method)
	case f.UncompressedSize64 > uint64(max(limits.MaxTensorBytes, 0))+npyOverhead:
		return tensor.Errorf(tensor.ErrLimit,
			"npz: %.256q has %d bytes, the limit is %d", f.Name, f.UncompressedSize64, limits.MaxTensorBytes)
	}
	return nil
}

func readNpzMember(f *zip.File, limits Limits) (tensor.Tensor, error) {
	r, err := f.Open()
	if err != nil {
		return tensor.Tensor{}, tensor.Errorf(tensor.ErrMalformed, "cannot be unpacked: %v", err)
	}
	defer r.Close()
	// readNpy reads to the end, which is where the zip reader compares size and checksum.
	t, err := readNpy(r, limits)
	if corrupt := flate.CorruptInputError(0); errors.As(err, &corrupt) || errors.Is(err, zip.ErrChecksum) ||
		errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
		return tensor.Tensor{}, tensor.Errorf(tensor.ErrMalformed, "cannot be unpacked: %v", err)
	}
	return t, err
}

// budgetReader limits the bytes that are read while a zip directory is parsed: archive/zip
// keeps the whole directory in memory.
type budgetReader struct {
	r         io.ReaderAt
	left      atomic.Int64
	unlimited atomic.Bool
}

func (b *budgetReader) ReadAt(p []byte, offset int64) (int, error) {
	if !b.unlimited.Load() && b.left.Add(-int64(len(p))) < 0 {
		return 0, tensor.ErrLimit
	}
	return b.r.ReadAt(p, offset)
}
