package images

import (
	"math"

	"mlpromote.dev/mlpromote/registry"
)

// resized scales an image with a triangular filter that is as wide as a pixel of the smaller of the two
// images, first along the rows and then along the columns, with bytes between. That is what Pillow calls
// BILINEAR and torchvision uses for images; the weights are of 22 bits as there, so that bytes are the same.
func (p pixels) resized(width, height int) pixels {
	if width != p.width {
		p = p.scaledRows(width)
	}
	if height != p.height {
		p = p.transposed().scaledRows(height).transposed()
	}
	return p
}

// weightBits is the precision of the weights.
const weightBits = 22

// window is the source pixels of one pixel, with their weights.
type window struct {
	first   int
	weights []int64
}

func windows(from, to int) []window {
	scale := float64(from) / float64(to)
	spread := math.Max(scale, 1)
	out := make([]window, to)
	for i := range out {
		center := float64((float64(i) + 0.5) * scale)
		first := max(int(center-spread+0.5), 0)
		last := min(int(center+spread+0.5), from)
		weights, sum := make([]float64, last-first), 0.0
		for k := range weights {
			distance := math.Abs(float64(float64(k+first)-center+0.5) * float64(1/spread))
			weights[k] = math.Max(1-distance, 0)
			sum += weights[k]
		}
		out[i] = window{first, make([]int64, len(weights))}
		for k, w := range weights {
			out[i].weights[k] = int64(float64(w/sum)*(1<<weightBits) + 0.5)
		}
	}
	return out
}

func (p pixels) scaledRows(width int) pixels {
	out := pixels{width: width, height: p.height, channels: p.channels, data: make([]byte, width*p.height*p.channels)}
	all := windows(p.width, width)
	for y := range p.height {
		row := p.data[y*p.width*p.channels:]
		to := out.data[y*width*p.channels:]
		for x, win := range all {
			for c := range p.channels {
				sum := int64(1) << (weightBits - 1)
				for k, w := range win.weights {
					sum += w * int64(row[(win.first+k)*p.channels+c])
				}
				to[x*p.channels+c] = byte(min(sum>>weightBits, 255))
			}
		}
	}
	return out
}

func (p pixels) transposed() pixels {
	out := pixels{width: p.height, height: p.width, channels: p.channels, data: make([]byte, len(p.data))}
	for y := range p.height {
		for x := range p.width {
			copy(out.data[(x*p.height+y)*p.channels:][:p.channels], p.data[(y*p.width+x)*p.channels:])
		}
	}
	return out
}

// placed copies an image into one of another size that is black. Offsets below 0 cut it.
func (p pixels) placed(width, height, left, top int) pixels {
	out := pixels{width: width, height: height, channels: p.channels, data: make([]byte, width*height*p.channels)}
	from, to := max(-left, 0), min(width-left, p.width)
	for y := range height {
		if source := y - top; source >= 0 && source < p.height && from < to {
			copy(out.data[(y*width+left+from)*p.channels:], p.data[(source*p.width+from)*p.channels:(source*p.width+to)*p.channels])
		}
	}
	return out
}

// fitted gives an image the size of the model. Errors: CodeInvalid where nothing says how; others say why
// the image is left out.
func (r recipe) fitted(p pixels) (pixels, error) {
	w, h := r.width, r.height
	if p.width == w && p.height == h && r.shorter == 0 {
		return p, nil
	}
	scaledWidth, scaledHeight := r.scaled(p)
	if r.fit == "" {
		return pixels{}, registry.Errorf(registry.CodeInvalid,
			"%dx%d pixels, the model wants %dx%d: want --fit crop, stretch or pad", p.width, p.height, w, h)
	}
	if scaledWidth > maxPixels/max(p.height, scaledHeight) || p.height > maxPixels/scaledWidth {
		return pixels{}, errNoImage("%dx%d pixels: its sides differ too much to be scaled", p.width, p.height)
	}
	p = p.resized(scaledWidth, scaledHeight)
	switch r.fit {
	case FitCrop:
		return p.placed(w, h, -half(p.width-w), -half(p.height-h)), nil
	case FitPad:
		return p.placed(w, h, (w-p.width)/2, (h-p.height)/2), nil
	}
	return p, nil
}

// scaled is the size that an image is scaled to before it is cut or put on black.
func (r recipe) scaled(p pixels) (width, height int) {
	w, h := r.width, r.height
	if r.shorter > 0 {
		w, h = r.shorter, r.shorter
	}
	wide := w*p.height <= h*p.width // it is wider than what it has to fit
	switch {
	case r.fit == FitCrop && wide:
		return p.width * h / p.height, h
	case r.fit == FitCrop:
		return w, p.height * w / p.width
	case r.fit == FitPad && wide:
		return w, max(p.height*w/p.width, 1)
	case r.fit == FitPad:
		return max(p.width*h/p.height, 1), h
	}
	return w, h
}

// half is where torchvision's CenterCrop begins.
func half(n int) int { return int(math.RoundToEven(float64(n) / 2)) }
