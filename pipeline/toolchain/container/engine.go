package container

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// programs run containers, in the order of preference. They take the same arguments.
var programs = []string{"podman", "docker"}

// Image is a container image on this machine.
type Image struct {
	program string          // path of podman or docker
	Digest  registry.Digest // of its configuration, which names its layers
}

// Find finds an image by ref or digest, with the first of podman and docker that has it. It
// pulls nothing. Errors: CodeUnavailable if neither program works here or has the image, with a
// hint.
func Find(ctx context.Context, reference string) (Image, error) {
	var errs []error
	var have string
	for _, name := range programs {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		have = cmp.Or(have, name)
		id, err := output(ctx, program, "image", "inspect", "--format", "{{.Id}}", "--", reference)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d := digest.NewDigestFromEncoded(digest.SHA256, strings.TrimPrefix(strings.TrimSpace(id), "sha256:"))
		if err := d.Validate(); err != nil {
			return Image{}, registry.Lastingf(registry.CodeUnavailable,
				"%s calls image %s %q, which is not a digest", name, reference, id)
		}
		return Image{program, d}, nil
	}
	if have == "" {
		return Image{}, registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
			"image %s: this machine has neither podman nor docker", reference),
			"install podman, or use the toolchain without an image")
	}
	return Image{}, registry.WithHint(registry.Lastingf(registry.CodeUnavailable,
		"image %s: %w", reference, errors.Join(errs...)),
		"%s pull %s", have, reference)
}

// output runs a program and returns its output. Errors include the end of its standard error.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environment(os.Environ())
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		return "", registry.Errorf(registry.CodeUnavailable, "%s: %s (%w)", program, lines[len(lines)-1], err)
	}
	return string(out), nil
}
