// Command writers changes a YAML file as tools do that share a repository with `mlpromote render`, by the library that they use:
// Flux sets values behind markers, and Argo CD Image Updater sets an element of images in a kustomization.
//
//	writers flux FILE NAMESPACE:POLICY[:tag] VALUE
//	writers image-updater FILE IMAGE TAG
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/kustomize/kyaml/fieldmeta"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: writers flux FILE POLICY VALUE, or writers image-updater FILE IMAGE TAG")
	}
	change := map[string]func(name, value string) kio.Filter{"flux": flux, "image-updater": imageUpdater}[args[0]]
	if change == nil {
		return fmt.Errorf("%q is no tool that this knows", args[0])
	}
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var out bytes.Buffer
	through := &kio.ByteReadWriter{Reader: bytes.NewReader(data), Writer: &out, PreserveSeqIndent: true}
	pipeline := kio.Pipeline{Inputs: []kio.Reader{through}, Filters: []kio.Filter{change(args[2], args[3])}, Outputs: []kio.Writer{through}}
	if err := pipeline.Execute(); err != nil {
		return err
	}
	return os.WriteFile(args[1], out.Bytes(), 0o600)
}

// flux sets the values behind the marker of a policy. The library reads every comment as Flux has it do.
func flux(policy, value string) kio.Filter {
	fieldmeta.SetShortHandRef("$imagepolicy")
	setters := &spec.Schema{}
	setters.Definitions = spec.Definitions{fieldmeta.SetterDefinitionPrefix + policy: *spec.StringProperty()}
	return each(func(object *yaml.RNode) error {
		return walk(object.YNode(), func(scalar *yaml.Node) error {
			meta := fieldmeta.FieldMeta{SettersSchema: setters}
			if err := meta.Read(yaml.NewRNode(scalar)); err != nil {
				return err
			}
			if ref := meta.Schema.Ref.String(); ref != "" && strings.HasSuffix(ref, fieldmeta.SetterDefinitionPrefix+policy) {
				scalar.Value = value
			}
			return nil
		})
	})
}

// imageUpdater sets an element of images, and makes it if there is none.
func imageUpdater(image, tag string) kio.Filter {
	return each(func(object *yaml.RNode) error {
		element, err := yaml.Parse(fmt.Sprintf("name: %s\nnewTag: %q\n", image, tag))
		if err != nil {
			return err
		}
		return object.PipeE(yaml.LookupCreate(yaml.SequenceNode, "images"),
			yaml.ElementSetter{Element: element.YNode(), Keys: []string{"name"}, Values: []string{image}})
	})
}

func each(change func(object *yaml.RNode) error) kio.Filter {
	return kio.FilterFunc(func(objects []*yaml.RNode) ([]*yaml.RNode, error) {
		for _, object := range objects {
			if err := change(object); err != nil {
				return nil, err
			}
		}
		return objects, nil
	})
}

func walk(n *yaml.Node, visit func(scalar *yaml.Node) error) error {
	if n.Kind == yaml.ScalarNode {
		return visit(n)
	}
	for _, child := range n.Content {
		if err := walk(child, visit); err != nil {
			return err
		}
	}
	return nil
}
