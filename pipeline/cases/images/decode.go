package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // image.Decode reads it
	_ "image/png"  // as above
	"io"
	"os"
	"syscall"

	"mlpromote.dev/mlpromote/registry"
)

// errNoImage says why a file is left out.
func errNoImage(format string, args ...any) error { return fmt.Errorf(format, args...) }

// pixels are the bytes of an image, row after row, with channels for each.
type pixels struct {
	width, height, channels int
	data                    []byte
}

// readFile reads a file of an image, at most limit bytes. A pipe or a device is not opened.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reasonOf(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNoImage("not a regular file")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, reasonOf(err)
	}
	if int64(len(data)) > limit {
		return nil, errNoImage("more than %d bytes", limit)
	}
	return data, nil
}

// reasonOf is a system error without the name of the file.
func reasonOf(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// decode reads the header of a PNG or JPEG file and, where it has at most limit pixels, the image as RGB, or
// gray. An alpha channel is dropped, as frameworks do.
func decode(data []byte, gray bool, limit int64) (pixels, error) {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case errors.Is(err, image.ErrFormat):
		return pixels{}, errNoImage("neither PNG nor JPEG")
	case err != nil:
		return pixels{}, errNoImage("damaged: %s", registry.PlainText(err.Error()))
	case config.Width < 1 || config.Height < 1 || int64(config.Width) > limit/int64(config.Height):
		return pixels{}, errNoImage("%dx%d pixels, more than the %d of the limit", config.Width, config.Height, limit)
	}
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return pixels{}, errNoImage("damaged: %s", registry.PlainText(err.Error()))
	}
	p := rgb(decoded)
	if gray {
		return p.gray(), nil
	}
	return p, nil
}

// rgb copies the colors of an image.
func rgb(from image.Image) pixels {
	bounds := from.Bounds()
	p := pixels{width: bounds.Dx(), height: bounds.Dy(), channels: 3}
	p.data = make([]byte, 0, p.width*p.height*3)
	var source func(x, y int) (r, g, b byte)
	switch m := from.(type) {
	case *image.NRGBA:
		source = func(x, y int) (r, g, b byte) { c := m.NRGBAAt(x, y); return c.R, c.G, c.B }
	case *image.NRGBA64:
		source = func(x, y int) (r, g, b byte) {
			c := m.NRGBA64At(x, y)
			return byte(c.R >> 8), byte(c.G >> 8), byte(c.B >> 8)
		}
	default:
		opaque := image.NewRGBA(bounds)
		draw.Draw(opaque, bounds, from, bounds.Min, draw.Src)
		source = func(x, y int) (r, g, b byte) { c := opaque.RGBAAt(x, y); return c.R, c.G, c.B }
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b := source(x, y)
			p.data = append(p.data, r, g, b)
		}
	}
	return p
}

// gray weighs the colors as ITU-R BT.601 does, in the fixed point of package image/color and of Pillow.
func (p pixels) gray() pixels {
	out := pixels{width: p.width, height: p.height, channels: 1, data: make([]byte, p.width*p.height)}
	for i := range out.data {
		r, g, b := uint32(p.data[3*i]), uint32(p.data[3*i+1]), uint32(p.data[3*i+2])
		out.data[i] = byte((19595*r + 38470*g + 7471*b + 1<<15) >> 16)
	}
	return out
}
