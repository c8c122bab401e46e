//go:build cgo

package ort

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rt "github.com/yalue/onnxruntime_go"

	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// shares runs the first case of a shard in a separate session with profiling, and reads the profile.
func (e *engine) shares(s *caserun.Shard) ([]evidence.ProviderShare, error) {
	path, err := e.profile(s, 1)
	if err != nil {
		return nil, err
	}
	return readProfile(path)
}

// profile runs the first case of a shard so often in a separate session with profiling, and returns the path of
// the profile.
func (e *engine) profile(s *caserun.Shard, runs int) (string, error) {
	options, err := e.settings.open()
	if err != nil {
		return "", err
	}
	prefix := filepath.Join(os.TempDir(), fmt.Sprintf("profile-%d-%s", runs, e.id))
	if err := options.EnableProfiling(prefix); err != nil {
		return "", release(options, err)
	}
	profiled := *e
	profiled.session, err = rt.NewDynamicAdvancedSession(e.path, names(e.inputs), names(e.outputs), options)
	if err = release(options, err); err != nil {
		return "", loadError(e.id, e.path, err)
	}
	for range runs {
		if err = profiled.Feed(s, 0); err != nil {
			break
		}
		_, failed := profiled.run()
		profiled.bound.free()
		if failed != nil {
			err = driverproc.Errorf(codeOf(failed.Error()), "engine %s: %v", e.id, failed)
			break
		}
	}
	if err = errors.Join(err, profiled.close()); err != nil { // Destroy writes the profile
		return "", err
	}
	found, err := filepath.Glob(prefix + "_*.json")
	if err != nil || len(found) != 1 {
		return "", driverproc.Errorf(driverproc.ToolFailed, "engine %s: the runtime left %d profiles, expected one", e.id, len(found))
	}
	return found[0], nil
}

// profileEvent is an entry of ONNX Runtime's profile, in the trace event format.
type profileEvent struct {
	Category string `json:"cat"`
	Name     string `json:"name"`
	Micros   int64  `json:"dur"`
	Args     struct {
		Provider string `json:"provider"`
		Operator string `json:"op_name"`
	} `json:"args"`
}

// readProfile counts the kernels of a profile by provider, in the order of provider names.
func readProfile(path string) ([]evidence.ProviderShare, error) {
	shares := make(map[string]*evidence.ProviderShare)
	err := eachEvent(path, func(event profileEvent) {
		if event.Category == "Node" && event.Args.Provider != "" {
			count(shares, event)
		}
	})
	if err != nil {
		return nil, err
	}
	var all []evidence.ProviderShare
	for _, s := range shares {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b evidence.ProviderShare) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// eachEvent reads a profile, one event at a time.
func eachEvent(path string, each func(profileEvent)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	decoder := json.NewDecoder(f)
	_, err = decoder.Token() // start of the list
	for err == nil && decoder.More() {
		var event profileEvent
		if err = decoder.Decode(&event); err == nil {
			each(event)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("profile: %w", err)
	}
	return nil
}

func count(shares map[string]*evidence.ProviderShare, event profileEvent) {
	s, ok := shares[event.Args.Provider]
	if !ok {
		s = &evidence.ProviderShare{Name: event.Args.Provider}
		shares[s.Name] = s
	}
	s.Nodes++
	s.TimeNS += event.Micros * int64(time.Microsecond)
}
