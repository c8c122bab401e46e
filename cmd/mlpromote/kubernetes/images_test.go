//go:build linux

package kubernetes

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// Images of pods, made of files of this machine. Pods name them with imagePullPolicy Never.
const (
	pauseImage  = "localhost/pause:1"                  // keeps the namespaces of a pod
	boxImage    = "localhost/box:1"                    // busybox
	pythonImage = "localhost/python:1"                 // Python with ONNX Runtime and NumPy; of the method python
	ourImage    = "docker.io/library/mlpromote:latest" // of `make image`; of the method ours
)

// importBase imports the images of busybox.
func (w *world) importBase() error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return fmt.Errorf("no busybox-static: %w", err)
	}
	if program, err := elf.NewFile(bytes.NewReader(busybox)); err != nil || program.Section(".interp") != nil {
		return errors.Join(errors.New("/bin/busybox needs libraries, which a pod does not have: install busybox-static"), err)
	}
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	for _, folder := range []string{"bin/", "etc/", "tmp/"} {
		err = errors.Join(err, files.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o1777}))
	}
	err = errors.Join(err, files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: int64(len(busybox))}))
	_, written := files.Write(busybox)
	for _, name := range []string{"cat", "find", "ls", "sh", "sha256sum", "sleep", "true", "wget"} {
		err = errors.Join(err, files.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}))
	}
	layers := [][]byte{layer.Bytes()}
	return errors.Join(err, written, files.Close(), w.importLayers(pauseImage, layers, "sleep", "1000000"), w.importLayers(boxImage, layers, "sh"))
}

// importLayers makes an image of layers and gives it to containerd.
func (w *world) importLayers(ref string, layers [][]byte, entrypoint ...string) error {
	var added []v1.Layer
	for _, layer := range layers {
		added = append(added, static.NewLayer(layer, types.OCIUncompressedLayer))
	}
	image, err := mutate.AppendLayers(empty.Image, added...)
	if err != nil {
		return err
	}
	made, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config := made.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: entrypoint, Env: []string{"PATH=/opt/python/bin:/bin"}}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(w.folder, "image-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	return errors.Join(tarball.Write(tag, image, file), file.Close(), w.importFile(file.Name()))
}

// importFile gives containerd the images of a file, as `docker save` writes it.
func (w *world) importFile(path string) error {
	out, err := w.run("", w.program("ctr"), "--namespace=k8s.io", "images", "import", "--local", path)
	if err != nil {
		return fmt.Errorf("ctr images import %s: %w\n%s", filepath.Base(path), err, out)
	}
	return nil
}

var pythonOnce, oursOnce sync.Once

// pythonLayer is the install of ONNX Runtime that mlpromote has, as the layer of an image.
func (c *cluster) pythonLayer() []byte {
	c.Helper()
	record, err := toolchaintest.Installer(c.T, "onnxruntime").Find("onnxruntime")
	var layer bytes.Buffer
	if err := errors.Join(err, programtest.WritePython(&layer, record.Interpreter(), "onnxruntime*", "numpy*")); err != nil {
		c.Fatal(err)
	}
	return layer.Bytes()
}

// python imports an image with ONNX Runtime, and returns its name.
func (c *cluster) python() string {
	c.Helper()
	var err error
	pythonOnce.Do(func() { err = c.importLayers(pythonImage, [][]byte{c.pythonLayer()}, "python3") })
	if err != nil {
		c.Fatal(err)
	}
	return pythonImage
}

// ours imports the image of the service, and returns its name.
func (c *cluster) ours() string {
	c.Helper()
	var err error
	oursOnce.Do(func() { err = c.importFile(c.program("image-" + runtime.GOARCH + ".tar")) })
	if err != nil {
		c.Fatalf("%v; make interop-kubernetes writes the file", err)
	}
	return ourImage
}
