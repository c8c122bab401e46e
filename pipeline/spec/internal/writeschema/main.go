// Command writeschema writes the JSON Schema of mlpromote.yaml to the file that is
// its argument.
package main

import (
	"log"
	"os"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: writeschema FILE")
	}
	schema, err := spec.Schema()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], schema, 0o644); err != nil {
		log.Fatal(err)
	}
}
