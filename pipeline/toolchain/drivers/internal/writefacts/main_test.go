package main

import (
	"bytes"
	"os"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
)

// The table that programs without drivers read has what the rows of the drivers say.
func TestTableIsOfTheRows(t *testing.T) {
	t.Parallel()
	want, err := source(drivers.Facts())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../../../registry/toolchains/table.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("registry/toolchains/table.go is not of these rows: run go generate ./pipeline/toolchain/drivers\n%s", want)
	}
}
