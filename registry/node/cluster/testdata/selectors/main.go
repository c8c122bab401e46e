// Program selectors evaluates CEL selectors of resource claims on devices, with the code that the scheduler evaluates them
// with. It reads questions in JSON from stdin, and writes an answer for each to stdout.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// question asks whether a device meets all selectors.
type question struct {
	Driver    string             `json:"driver"`
	Selectors []string           `json:"selectors"`
	Device    resourceapi.Device `json:"device"`
}

type answer struct {
	Matches bool   `json:"matches"`
	Error   string `json:"error,omitempty"`
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		matches, err := evaluate(q)
		a := answer{Matches: matches}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func evaluate(q question) (bool, error) {
	device := cel.Device{Driver: q.Driver, Attributes: q.Device.Attributes, Capacity: q.Device.Capacity}
	for _, selector := range q.Selectors {
		compiled := cel.GetCompiler(cel.Features{}).CompileCELExpression(selector, cel.Options{})
		if compiled.Error != nil {
			return false, compiled.Error
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), device)
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}
