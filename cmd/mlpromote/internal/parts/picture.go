package parts

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"unicode"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Bounds on what is shown of an input.
const (
	maxPicture = 64  // pixels of the longer side
	minPicture = 4   // of the shorter side of what counts as an image
	maxText    = 400 // bytes
	maxNumbers = 16
)

// Picture returns an input as a PNG, if its shape is that of an image: one case, 1 or 3 channels first or last. Values are
// spread between the smallest and the largest, since nothing says how they were normalised. Larger images are sampled down
// to 64 pixels.
func Picture(t tensor.Tensor) ([]byte, bool) {
	l, ok := layoutOf(t.Shape)
	if !ok || t.Len() == 0 {
		return nil, false
	}
	low, high := extent(t)
	at := func(channel, y, x int64) uint8 {
		v := t.Float64(l.index(channel, y, x))
		if !(high > low) || math.IsNaN(v) {
			return 0
		}
		return uint8(math.Round(255 * math.Min(1, math.Max(0, (v-low)/(high-low)))))
	}
	step := max((max(l.height, l.width)+maxPicture-1)/maxPicture, 1)
	out := image.NewNRGBA(image.Rect(0, 0, int((l.width+step-1)/step), int((l.height+step-1)/step)))
	for y := int64(0); y < l.height; y += step {
		for x := int64(0); x < l.width; x += step {
			c := color.NRGBA{at(0, y, x), 0, 0, 255}
			if c.G, c.B = c.R, c.R; l.channels == 3 {
				c.G, c.B = at(1, y, x), at(2, y, x)
			}
			out.SetNRGBA(int(x/step), int(y/step), c)
		}
	}
	var file bytes.Buffer
	if err := png.Encode(&file, out); err != nil {
		return nil, false
	}
	return file.Bytes(), true
}

// layout is how an image lies in a tensor.
type layout struct {
	channels, height, width int64
	last                    bool // channels are the last dimension
}

// layoutOf is that of a shape; ok is false if it is not that of one image.
func layoutOf(shape []int64) (l layout, ok bool) {
	if len(shape) != 4 || shape[0] != 1 {
		return l, false
	}
	l = layout{shape[1], shape[2], shape[3], false}
	if l.channels != 1 && l.channels != 3 {
		l = layout{shape[3], shape[1], shape[2], true}
	}
	return l, (l.channels == 1 || l.channels == 3) && l.height >= minPicture && l.width >= minPicture
}

func (l layout) index(channel, y, x int64) int {
	if l.last {
		return int((y*l.width+x)*l.channels + channel)
	}
	return int((channel*l.height+y)*l.width + x)
}

// extent is the smallest and the largest finite value.
func extent(t tensor.Tensor) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range t.Len() {
		if v := t.Float64(i); !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	return low, high
}

// Words returns an input as text: the text that it is, the tokens that its numbers name, or a few numbers. vocabulary has
// the token of each number; nil if it is not known. It is empty for what has no short text.
func Words(t tensor.Tensor, vocabulary []string) string {
	if texts, err := tensor.UnpackText(t); err == nil && len(texts) > 0 {
		text := strings.Join(texts, " ")
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) {
			return "" // bytes, such as those of an image
		}
		return shortened(text)
	}
	whole := t.DType == tensor.Int64 || t.DType == tensor.Int32
	if whole && len(vocabulary) > 0 && len(t.Shape) == 2 {
		return shortened(tokens(t, vocabulary))
	}
	if t.Len() > maxNumbers {
		return ""
	}
	var numbers []string
	for i := range t.Len() {
		numbers = append(numbers, fmt.Sprintf("%.4g", t.Float64(i)))
	}
	return strings.Join(numbers, ", ")
}

// tokens are the tokens of a vocabulary that numbers name, without those at the end with which a case is filled up. It is
// empty where the numbers are of something else, such as a mask.
func tokens(t tensor.Tensor, vocabulary []string) string {
	var words []string
	mask := true
	for i := range t.Len() {
		n := int(t.Float64(i))
		if n < 0 || n >= len(vocabulary) {
			return ""
		}
		mask = mask && n <= 1
		words = append(words, vocabulary[n])
	}
	if mask {
		return ""
	}
	for len(words) > 1 && words[len(words)-1] == words[len(words)-2] {
		words = words[:len(words)-1]
	}
	return strings.ReplaceAll(strings.Join(words, " "), " ##", "")
}

func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}
