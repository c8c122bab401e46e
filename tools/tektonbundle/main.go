// Command tektonbundle pushes a resource of Tekton, such as our task, to a registry as a bundle, which clusters name by its digest.
package main

import (
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: tektonbundle FILE REGISTRY/REPOSITORY:TAG")
		os.Exit(2)
	}
	pushed, err := push(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "tektonbundle:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, pushed)
}

// push gives the bundle's name with its digest. It signs in as `docker login` has stored.
func push(file, to string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		return "", err
	}
	image, err := bundle(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	if err := remote.Write(ref, image, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", err
	}
	return ref.Context().Name() + "@" + digest.String(), nil
}
