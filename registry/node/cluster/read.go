package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Limits of what is read. A node with all its labels, annotations and images is about 20 KB of JSON.
const (
	maxBytes   = 256 << 20
	maxObject  = 8 << 20 // of one object; etcd stores at most 1.5 MiB
	maxDepth   = 64
	maxNodes   = 20_000
	maxDevices = 256 // of one node, as many as a node document is read with from labels
)

// object is the part of a Node or a ResourceSlice that is read.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Driver   string   `json:"driver"`
		NodeName string   `json:"nodeName"`
		Pool     pool     `json:"pool"`
		Devices  []device `json:"devices"`
	} `json:"spec"`
	Status struct {
		Capacity map[string]string `json:"capacity"`
	} `json:"status"`
}

// pool is the set of slices that a ResourceSlice is part of.
type pool struct {
	Name               string `json:"name"`
	Generation         int64  `json:"generation"`
	ResourceSliceCount int    `json:"resourceSliceCount"`
}

// Fleet is nodes with the devices that DRA drivers publish for them. The zero Fleet is empty.
type Fleet struct {
	nodes  []object
	names  map[string]bool
	slices []object
}

// Add reads Nodes and ResourceSlices as kubectl get -o json prints them: one object, a list of one kind or of both, or
// several of these, one behind the other. Errors call the input name. Errors: CodeInvalid, naming the object.
func (f *Fleet) Add(name string, from io.Reader) error {
	in := &limited{from: from, left: maxBytes, object: maxObject}
	d := json.NewDecoder(in)
	found := false
	for {
		switch err := f.document(d, in); {
		case errors.Is(err, io.EOF) && found:
			return nil
		case errors.Is(err, io.EOF):
			err = errors.New("it is empty")
			fallthrough
		case err != nil:
			if in.err != nil {
				err = in.err
			}
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s, byte %d: %w", name, d.InputOffset(), err),
				"kubectl get nodes,resourceslices -o json")
		}
		found = true
	}
}

// document reads one object or list. The items of a list are read one by one, because a cluster can have many.
func (f *Fleet) document(d *json.Decoder, in *limited) error {
	in.object = maxObject
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return errors.New("want Nodes and ResourceSlices in JSON")
	}
	rest, listed, kind := map[string]json.RawMessage{}, false, ""
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return unexpected(err)
		}
		if key != "items" {
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				return unexpected(err)
			}
			rest[fmt.Sprint(key)] = value
			if key == "kind" {
				_ = json.Unmarshal(value, &kind) // one that is no text is refused below
			}
			continue
		}
		if err := f.items(d, in, strings.TrimSuffix(kind, "List")); err != nil {
			return err
		}
		listed = true
	}
	if _, err := d.Token(); err != nil || listed {
		return unexpected(err)
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	return f.add(o)
}

// unexpected is an end of the input inside a document.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// items reads the items of a list. Those of a list of one kind, as the API server has it, do not repeat the kind.
func (f *Fleet) items(d *json.Decoder, in *limited, kind string) error {
	token, err := d.Token()
	if err != nil || token == nil { // null is a list without items
		return unexpected(err)
	}
	if token != json.Delim('[') {
		return errors.New("items: want a list")
	}
	for i := 0; d.More(); i++ {
		var o object
		in.object = maxObject
		if err := d.Decode(&o); err != nil {
			return fmt.Errorf("items[%d]: %w", i, unexpected(err))
		}
		if o.Kind == "" {
			o.Kind = kind
		}
		if err := f.add(o); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	_, err = d.Token()
	return unexpected(err)
}

func (f *Fleet) add(o object) error {
	name := registry.PlainText(o.Metadata.Name)
	switch {
	case o.Kind == "Node" && name == "":
		return errors.New("the node has no name")
	case o.Kind == "Node" && f.names[name]:
		return fmt.Errorf("node %s is there twice", name)
	case o.Kind == "Node" && len(f.nodes) == maxNodes:
		return fmt.Errorf("more than %d nodes: select some of them with -l", maxNodes)
	case o.Kind == "Node":
		if f.names == nil {
			f.names = map[string]bool{}
		}
		f.names[name] = true
		f.nodes = append(f.nodes, o)
	case o.Kind == "ResourceSlice" && o.APIVersion != "" && o.APIVersion != "resource.k8s.io/v1" && o.APIVersion != "resource.k8s.io/v1beta2":
		return fmt.Errorf("ResourceSlice %s has apiVersion %.100q: want resource.k8s.io/v1, which kubectl get resourceslices.v1.resource.k8s.io prints",
			name, o.APIVersion)
	case o.Kind == "ResourceSlice" && len(f.slices) == maxNodes:
		return fmt.Errorf("more than %d ResourceSlices", maxNodes)
	case o.Kind == "ResourceSlice":
		f.slices = append(f.slices, o)
	default:
		return fmt.Errorf("%.100q: want Nodes and ResourceSlices", o.Kind)
	}
	return nil
}

// limited reads JSON of a limited size and depth.
type limited struct {
	from            io.Reader
	left            int64 // bytes of the input
	object          int64 // bytes of the present object, which is held in memory
	depth           int
	quoted, escaped bool
	err             error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.from.Read(p)
	l.left, l.object = l.left-int64(n), l.object-int64(n)
	switch {
	case l.left < 0:
		l.err = fmt.Errorf("more than %d MiB: select some of the nodes with -l", maxBytes>>20)
	case l.object < 0:
		l.err = fmt.Errorf("an object of more than %d MiB", maxObject>>20)
	}
	if l.err != nil {
		return 0, l.err
	}
	for _, c := range p[:n] {
		switch {
		case l.escaped:
			l.escaped = false
		case l.quoted && c == '\\':
			l.escaped = true
		case c == '"':
			l.quoted = !l.quoted
		case l.quoted:
		case c == '{' || c == '[':
			if l.depth++; l.depth > maxDepth {
				l.err = fmt.Errorf("nested more than %d deep", maxDepth)
				return 0, l.err
			}
		case c == '}' || c == ']':
			l.depth--
		}
	}
	return n, err
}
