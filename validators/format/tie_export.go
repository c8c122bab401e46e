package format

import "io"

// ExportTie reads which platform a program of jax.export is for. It has no machine code, so nothing else is required.
func ExportTie(r io.ReaderAt, size int64) (Tie, error) {
	platform, err := jaxPlatform(r, size)
	return Tie{Backend: platform}, err
}
