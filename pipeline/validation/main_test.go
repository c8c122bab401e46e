//go:build cgo

package validation_test

import (
	"context"
	"os"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// TestMain makes this test program answer as the child that it starts.
func TestMain(m *testing.M) {
	os.Exit(toolchaintest.Main(m, map[string]func() int{
		ort.Args()[0]: func() int { return ort.Main(context.Background(), os.Stdin, os.Stderr) },
	}))
}
