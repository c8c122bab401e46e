// Command image assembles the container image of the registry service without a container
// engine: the program, a bundle of CA certificates, a user other than root, and a folder for
// data. Its output depends only on its arguments.
//
//	image -version V -ca FILE -layout DIR ARCH=PROGRAM...
//
// The layout (OCI image layout) has an index with an image per architecture. Beside it are files
// DIR-ARCH.tar for `docker load` and `podman load`, with the tags mlpromote:V and
// mlpromote:latest. PROGRAM is mlpromote, built for linux and ARCH with CGO_ENABLED=0.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	version := flags.String("version", "", "version of the program: the image's label and tag")
	ca := flags.String("ca", "", "PEM file of CA certificates")
	dir := flags.String("layout", "", "folder to write the layout to; replaced if it is there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *ca == "" || *dir == "" || flags.NArg() == 0 {
		return errors.New("want -version, -ca, -layout, and ARCH=PROGRAM at least once")
	}
	certificates, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	var images []platformImage
	for _, arg := range flags.Args() {
		arch, path, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("argument %q: want ARCH=PROGRAM", arg)
		}
		program, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		image, err := assemble(contents{arch: arch, version: *version, program: program, certificates: certificates})
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		images = append(images, platformImage{arch, image})
	}
	return write(*dir, *version, images)
}
