//go:build !cgo

package ort

import (
	"context"
	"io"

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// Main is the child process: it does one request of mlpromote.driver/v1 and returns the exit
// status. This build has no cgo, so it responds that the driver is unavailable.
func Main(ctx context.Context, stdin io.Reader, stderr io.Writer) int {
	return driverproc.Serve(ctx, stdin, stderr, func(context.Context, driverproc.Request) (any, error) {
		return nil, driverproc.Errorf(driverproc.Unavailable,
			"this program was built without cgo, which ONNX Runtime needs: use a build with CGO_ENABLED=1")
	})
}
