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

	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/registry"
)

// askShares finds out which execution providers run the engines that declare some, with the
// first case.
func (g *runner) askShares() error {
	if !g.options.Shares {
		return nil
	}
	for n, e := range g.engines {
		if len(e.settings.providers) == 0 {
			continue
		}
		var err error
		if g.results[n].Providers, err = e.shares(g.shards[0]); err != nil {
			return err
		}
	}
	return nil
}

// shares runs the first case of a shard in a separate session with profiling, and reads the profile.
func (e *engine) shares(s *shard) ([]registry.ProviderShare, error) {
	options, err := e.settings.open()
	if err != nil {
		return nil, err
	}
	prefix := filepath.Join(os.TempDir(), "profile-"+e.id)
	if err := options.EnableProfiling(prefix); err != nil {
		return nil, release(options, err)
	}
	profiled := *e
	profiled.session, err = rt.NewDynamicAdvancedSession(e.path, names(e.inputs), names(e.outputs), options)
	if err = release(options, err); err != nil {
		return nil, loadError(e.id, e.path, err)
	}
	if err = profiled.feed(s, 0); err == nil {
		_, err = profiled.run()
		profiled.bound.free()
	}
	if err = errors.Join(err, profiled.close()); err != nil { // Destroy writes the profile
		return nil, err
	}
	found, err := filepath.Glob(prefix + "_*.json")
	if err != nil || len(found) != 1 {
		return nil, driverproc.Errorf(driverproc.ToolFailed, "engine %s: the runtime left %d profiles, expected one", e.id, len(found))
	}
	return readProfile(found[0])
}

// profileEvent is an entry of ONNX Runtime's profile, in the trace event format.
type profileEvent struct {
	Category string `json:"cat"`
	Name     string `json:"name"`
	Micros   int64  `json:"dur"`
	Args     struct {
		Provider string `json:"provider"`
	} `json:"args"`
}

// readProfile counts the kernels of a profile by provider, in the order of provider names.
func readProfile(path string) ([]registry.ProviderShare, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	shares := make(map[string]*registry.ProviderShare)
	decoder := json.NewDecoder(f)
	_, err = decoder.Token() // start of the list
	for err == nil && decoder.More() {
		var event profileEvent
		if err = decoder.Decode(&event); err == nil && event.Category == "Node" && event.Args.Provider != "" {
			count(shares, event)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("profile: %w", err)
	}
	var all []registry.ProviderShare
	for _, s := range shares {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b registry.ProviderShare) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func count(shares map[string]*registry.ProviderShare, event profileEvent) {
	s, ok := shares[event.Args.Provider]
	if !ok {
		s = &registry.ProviderShare{Name: event.Args.Provider}
		shares[s.Name] = s
	}
	s.Nodes++
	s.TimeNS += event.Micros * int64(time.Microsecond)
}
