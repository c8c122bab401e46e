//go:build !cgo

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "serve: this program was built without cgo, which ONNX Runtime needs: build it with CGO_ENABLED=1")
	os.Exit(1)
}
