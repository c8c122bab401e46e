package images

import (
	"bytes"
	"encoding/hex"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// The bytes here are those of Pillow 12 for the same image: Image.fromarray(x).resize(size, Image.BILINEAR)
// and convert("L").
const (
	sourceHex = "f8c2becf931aed15f5d3ef2d059d9f3c36ec6d2ec75220cd240786de399208950e0f160a90d0181807290b553b68e16e" +
		"e2c9089f1a1ba37a2129c94346a6e42832b300b1893f0dbcff405e08089c191d9d92be73db872764ed7f48e3a8154984" +
		"10998c6b50a33d6e2f"
	grayHex = "d2976fd1704d52431e745b13a8103cb0ba427c8a903e78307d192aa895b7ae406f6258"
)

func fromHex(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func source(t testing.TB) pixels {
	t.Helper()
	return pixels{width: 7, height: 5, channels: 3, data: fromHex(t, sourceHex)}
}

func TestResizedAsPillowDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width, height int
		want          string
	}{
		"smaller": {4, 3, "a1688fb65c813b845750488737707599754c675937479178669574518496374e8d536974"},
		"larger": {11, 9, "f8c2bee5ad73d2882ee537b9e464acd3ef2d50bb761481b4373fe55732d86d2ec7c18cc3ad7a869e5f4cd233abc86193" +
			"8fd1233993521e6e7d516aa054429b5121926432cb5026a7461a7db12c94995b6a1f9f111451172f4f207bb12e505d35" +
			"210b3b32388c394e85516a78b5745faa6f3d4b5e144f4c1456691a60c0294587572c4e7c0b553b35955273df65c1d024" +
			"ca890f9f1a1ba2571f82902a34c24039b69b46a6e41b427e247e7d36bd7c6f7d71a44f5cd42f407e3658414869246574" +
			"4c928f70b3a53c3ba326749710aa8d324dac7c2f9ae54162592785101b9b1f229d5a738289b56b9f6b56759d6a43d387" +
			"45ada3507d9b6346772d5c88205d954a43a055676f598946db8727a5b54f61ec8350e69d35ab9b154984127c89298592" +
			"6357a15260643d6e2f"},
		"lower":     {7, 2, "7560a6686d5edc4c9476921e2d574558956b4340895c546c39c7806e7e8b943e572e51743c5c84609774"},
		"narrower":  {3, 5, "e48983a098814249ce5c1ba2465d344a601b61aa46a6701f4dac751c61a37b2b8941528e89c6682a8a90476a75"},
		"one pixel": {1, 1, "666e6b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, want := source(t).resized(c.width, c.height).data, fromHex(t, c.want); !bytes.Equal(got, want) {
				t.Errorf("%dx%d: got %x, want %x", c.width, c.height, got, want)
			}
		})
	}
	if got, want := source(t).gray().data, fromHex(t, grayHex); !bytes.Equal(got, want) {
		t.Errorf("gray: got %x, want %x", got, want)
	}
}

// What a fit makes of an image of a size, for a model of 4 by 4.
func TestFits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fit           string
		shorter       int
		width, height int // of the image
		scaled        [2]int
		black         int // pixels around it
	}{
		"crop of a wide one":      {FitCrop, 0, 16, 8, [2]int{8, 4}, 0},
		"crop of a tall one":      {FitCrop, 0, 8, 18, [2]int{4, 9}, 0},
		"crop from a longer side": {FitCrop, 6, 12, 9, [2]int{8, 6}, 0},
		"crop of the same size":   {FitCrop, 6, 4, 4, [2]int{6, 6}, 0},
		"pad of a wide one":       {FitPad, 0, 16, 8, [2]int{4, 2}, 8},
		"pad of a thin one":       {FitPad, 0, 1, 400, [2]int{1, 4}, 12},
		"stretch":                 {FitStretch, 0, 3, 9, [2]int{4, 4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recipe{width: 4, height: 4, channels: 1, fit: c.fit, shorter: c.shorter}
			p := pixels{width: c.width, height: c.height, channels: 1, data: bytes.Repeat([]byte{200}, c.width*c.height)}
			if w, h := r.scaled(p); [2]int{w, h} != c.scaled {
				t.Errorf("scaled to %dx%d, want %v", w, h, c.scaled)
			}
			got, err := r.fitted(p)
			if err != nil || len(got.data) != 16 {
				t.Fatalf("got %v, error %v, want 16 pixels", got, err)
			}
			if black := 16 - bytes.Count(got.data, []byte{200}); black != c.black {
				t.Errorf("%d pixels are not of the image, want %d: %v", black, c.black, got.data)
			}
		})
	}
}

// Images that would need far more memory when they are scaled than they have themselves are left out.
func TestSidesThatDiffer(t *testing.T) {
	t.Parallel()
	for _, fit := range []string{FitCrop, FitStretch} {
		r := recipe{width: 4096, height: 4096, channels: 1, fit: fit}
		p := pixels{width: 1, height: 60000, channels: 1, data: make([]byte, 60000)}
		if _, err := r.fitted(p); err == nil || registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want a reason to leave the image out", fit, err)
		}
	}
	r := recipe{width: 4, height: 4, channels: 1}
	if _, err := r.fitted(pixels{width: 1, height: 1, channels: 1, data: []byte{1}}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("without a fit: error %v, want one that asks for it", err)
	}
}

func encoded(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// filled is an image of one color in a model of colors.
func filled(model color.Model, c color.Color) image.Image {
	bounds := image.Rect(0, 0, 3, 2)
	var m interface {
		image.Image
		Set(x, y int, c color.Color)
	}
	switch model {
	case color.GrayModel:
		m = image.NewGray(bounds)
	case color.Gray16Model:
		m = image.NewGray16(bounds)
	case color.NRGBA64Model:
		m = image.NewNRGBA64(bounds)
	default:
		m = image.NewNRGBA(bounds)
	}
	for y := range 2 {
		for x := range 3 {
			m.Set(x, y, c)
		}
	}
	return m
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		m    image.Image
		want []byte // of a pixel
	}{
		"gray":             {filled(color.GrayModel, color.Gray{77}), []byte{77, 77, 77}},
		"gray of 16 bits":  {filled(color.Gray16Model, color.Gray16{0x4d80}), []byte{0x4d, 0x4d, 0x4d}},
		"half transparent": {filled(color.NRGBAModel, color.NRGBA{200, 100, 50, 128}), []byte{200, 100, 50}},
		"transparent":      {filled(color.NRGBA64Model, color.NRGBA64{0xc800, 0x6400, 0x3200, 1}), []byte{0xc8, 0x64, 0x32}},
		"opaque":           {filled(color.NRGBAModel, color.NRGBA{1, 2, 3, 255}), []byte{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := decode(encoded(t, c.m), false, 6)
			if err != nil {
				t.Fatal(err)
			}
			if want := slices.Repeat(c.want, 6); p.width != 3 || p.height != 2 || !bytes.Equal(p.data, want) {
				t.Errorf("got %dx%d %v, want 3x2 %v", p.width, p.height, p.data, want)
			}
		})
	}
	if _, err := decode(encoded(t, filled(color.GrayModel, color.Gray{1})), false, 5); err == nil {
		t.Error("6 pixels with a limit of 5: no error")
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, filled(color.NRGBAModel, color.NRGBA{90, 90, 90, 255}), nil); err != nil {
		t.Fatal(err)
	}
	if p, err := decode(b.Bytes(), true, 6); err != nil || math.Abs(float64(p.data[0])-90) > 2 {
		t.Errorf("JPEG of gray 90: got %v, error %v", p.data, err)
	}
}

// FuzzDecode: whatever the bytes are, an image has the size that it says and no more than the limit.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, filled(color.GrayModel, color.Gray{1})))
	f.Add(encoded(f, filled(color.NRGBA64Model, color.NRGBA64{1, 2, 3, 4})))
	var b bytes.Buffer
	if err := jpeg.Encode(&b, filled(color.GrayModel, color.Gray{1}), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 12
		p, err := decode(data, false, limit)
		if err != nil {
			return
		}
		if p.width*p.height > limit || len(p.data) != p.width*p.height*p.channels {
			t.Fatalf("%dx%d with %d bytes", p.width, p.height, len(p.data))
		}
		r := recipe{width: 8, height: 8, channels: 3, fit: FitCrop}
		if fitted, err := r.fitted(p); err == nil && len(fitted.data) != 8*8*3 {
			t.Fatalf("fitted to %d bytes, want %d", len(fitted.data), 8*8*3)
		}
	})
}
