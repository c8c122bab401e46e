package tie

import (
	"io"

	"mlpromote.dev/mlpromote/validators/format/jax"
)

// Export reads which platform a program of jax.export is for. It has no machine code, so nothing else is required.
func Export(r io.ReaderAt, size int64) (Tie, error) {
	platform, err := jax.Platform(r, size)
	return Tie{Backend: platform}, err
}
