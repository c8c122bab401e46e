package format_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators/format/formattest"
)

// evasions are files that Python reads in another way than Go does.
func evasions(t testing.TB) []hostile {
	t.Helper()
	all := append(folders(t), streams(t)...)
	all = append(all, configurations(t)...)
	all = append(all, records(t)...)
	return append(all, directories(t)...)
}

// folders are entries of archives that say they are folders, which Python reads like any other.
func folders(t testing.TB) []hostile {
	const unix, fat, ntfs, mac = 3 << 8, 0, 10 << 8, 19 << 8
	return []hostile{
		{"pickle in a folder of Unix", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: unix, ExternalAttrs: 0o040755 << 16}, call), `entry "weights"`},
		{"pickle in a folder of a Mac", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: mac, ExternalAttrs: 0o040755 << 16}, call), `entry "weights"`},
		{"pickle in a folder of FAT", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: fat, ExternalAttrs: 0x10}, call), `entry "weights"`},
		{"pickle in a folder of NTFS", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: ntfs, ExternalAttrs: 0x10}, call), `entry "weights"`},
		{"folder without a slash", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: unix, ExternalAttrs: 0o040755 << 16}, "text"), `entry "weights" that is a folder with bytes of its own`},
		{"folder with bytes", renamed(stored(t, "weights_", call), "weights_", "weights/"), `entry "weights/" that is a folder with bytes of its own`},
		{"folder with compressed bytes", renamed(formattest.Zipped(t, "weights_", call), "weights_", "weights/"), `entry "weights/" that is a folder with bytes of its own`},
		{"folder that says it has no bytes", sized(renamed(formattest.Zipped(t, "weights_", call), "weights_", "weights/"), 0), `entry "weights/" that is a folder with bytes of its own`},
	}
}

// streams have more behind them, or break, where Python has read what was before.
func streams(t testing.TB) []hostile {
	bz := string(unhex(t, "425a6839314159265359d442a82d000003c480700003040000a000221a6350860167400f177245385090d442a82d")) // a library
	zeros, keras := strings.Repeat("\x00", 10), `{"class_name": "Lambda"}`
	gzipped := func(s string) string { return string(compress(t, []byte(s), gz)) }
	whole := gzipped(keras)
	broken := []byte(gzipped(strings.Repeat("text", 5000) + string(formattest.Zipped(t, "a", keras))))
	broken[len(broken)-5]++ // of the checksum
	named := gzipped(keras)
	named = named[:3] + "\x08" + named[4:10] + strings.Repeat("n", 600) + "\x00" + named[10:]
	checked := whole[:3] + "\x02" + whole[4:10] + "\x00\x00" + whole[10:]
	numbers := "\x1f\x8b\x08\x00\x00\x00\x00\x00{" + whole[9:] + strings.Repeat("\x00", 600_000)
	randomized := []byte(bz)
	randomized[14] |= 0x80
	return []hostile{
		{"bzip2 with two bytes behind it", []byte(bz + "no"), "compressed by bzip2"},
		{"bzip2 with a byte behind it", []byte(bz + "\x00"), "compressed by bzip2"},
		{"bzip2 with part of another behind it", []byte(bz + "BZh"), "compressed by bzip2"},
		{"bzip2 of randomized blocks", randomized, "a damaged stream of bzip2"},
		{"gzip with zeros behind it", []byte(whole + zeros), "compressed by gzip, a Lambda layer"},
		{"gzip with text behind it", []byte(whole + "some text"), "compressed by gzip, a Lambda layer"},
		{"gzip in two parts with zeros between", []byte(gzipped(keras[:10]) + zeros + gzipped(keras[10:]) + zeros), "compressed by gzip, a Lambda layer"},
		{"gzip of a zip with zeros behind it", []byte(gzipped("text"+string(formattest.Zipped(t, "a", call))) + zeros), `compressed by gzip, entry "a"`},
		{"gzip with a wrong checksum", broken, "compressed by gzip"},
		{"gzip with a long name", []byte(named), "a damaged stream of gzip"},
		{"gzip with a wrong checksum of its header", []byte(checked), "a damaged stream of gzip"},
		{"gzip that safetensors could be", []byte(numbers), "compressed by gzip, a Lambda layer"},
		{"zlib with a wrong checksum", append(compress(t, []byte(keras), zl)[:len(compress(t, []byte(keras), zl))-1], 0), "compressed by zlib, a Lambda layer"},
		{"gzip with zeros behind it in a zip", formattest.Zipped(t, "a", whole+zeros), "compressed by gzip, a Lambda layer"},
		{"bzip2 of much with two bytes behind it",
			append(unhex(t,
				"425a6839314159265359b1cd2cd700031d9f80d400001000040000be07080a0008200050a699189898824a69311e846f546020138102015a88100b5473181fb97c77e4391cc3c680402fc5dc914e14242c734b35c0"), "no"...), "compressed by bzip2, a Lambda layer"},
		{"gzip with text behind it, longer", []byte(whole + strings.Repeat("some text ", 10)), "compressed by gzip, a Lambda layer"},
		{"gzip that breaks far behind", []byte(gzipped(strings.Repeat("text", 5<<20)+string(formattest.Zipped(t, "a", call))) + "\x1f\x8b\x08\xff"), "it may have an archive at its end"},
	}
}

// configurations of Keras are JSON as Python reads it.
func configurations(t testing.TB) []hostile {
	const layer = `"class_name": "Lambda", "config": {}}`
	const says = "a Lambda layer"
	utf16 := func(s string) string { return string(bytes.Join(bytes.Split([]byte(s), nil), []byte{0})) + "\x00" }
	entry := func(json string) []byte { return formattest.Zipped(t, "config.json", json) }
	header := fmt.Sprintf("%-100s%-24s%-24s%-8s0%-355s", `{"a": "`, "", fmt.Sprintf("%011o", len(layer)+4), "CHECKSUM", `", `)
	sum := 0
	for _, c := range []byte(strings.ReplaceAll(header, "CHECKSUM", "        ")) {
		sum += int(c)
	}
	header = strings.ReplaceAll(header, "CHECKSUM", fmt.Sprintf("%06o  ", sum))
	return []hostile{
		{"Keras behind NaN", []byte(`{"a": NaN, ` + layer), says},
		{"Keras behind Infinity", entry(`{"a": [-Infinity, Infinity], ` + layer), says},
		{"Keras behind a number of infinite size", entry(`{"a": 1e999, ` + layer), says},
		{"Keras with an escape in its key", entry(`{"class\u005fname": "\u004cambda"}`), says},
		{"Keras in escapes only",
			[]byte(`{"\u0063\u006c\u0061\u0073\u0073\u005f\u006e\u0061\u006d\u0065"` +
				"\n:\t" + `"\u005f\u005f\u006c\u0061\u006d\u0062\u0064\u0061\u005f\u005f"}`), "a lambda function"},
		{"Keras behind much", []byte(`{"a": "` + strings.Repeat("a", 9<<20) + `", ` + layer), says},
		{"Keras behind much space", entry(strings.Repeat(" ", 9<<10) + "{" + layer), says},
		{"Keras behind a string with quotes", entry(`{"a\\": "\"\\\"", ` + layer), says},
		{"configuration behind more than is at hand", entry(`{"a": "` + strings.Repeat("a", 17<<20) + `", ` + layer), "a configuration that cannot be looked into"},
		{"Keras behind more than is at hand", compress(t, []byte(`{"class_name": "Sequential", "a": "`+strings.Repeat("a", 17<<20)+`", `+layer), gz), "a Keras model that cannot be looked into"},
		{"configuration in UTF-16", entry(utf16("{" + layer)), "a configuration that cannot be looked into"},
		{"configuration in UTF-16 with a mark", entry("\xff\xfe" + utf16("{"+layer)), "a configuration that cannot be looked into"},
		{"Keras that a tar could be", []byte(header + layer + "   }"), says},
	}
}

// records are those of tar archives that change what is read of an entry.
func records(t testing.TB) []hostile {
	pax := func(kind byte, records map[string]string, body string) []byte {
		h := tar.Header{Name: "a", Mode: 0o644, Size: int64(len(body)), Typeflag: kind, Format: tar.FormatPAX, PAXRecords: records}
		if kind == tar.TypeXGlobalHeader {
			h = tar.Header{Typeflag: kind, Format: tar.FormatPAX, PAXRecords: records}
		}
		return tarWith(t, []tar.Header{h, {Name: "b", Typeflag: tar.TypeReg, Size: 4}}, []string{body, "text"})
	}
	other := func(archive []byte) []byte { return renamed(archive, "SPA.sparse.", "GNU.sparse.") } // Go's writer does not
	sparse := map[string]string{"SPA.sparse.major": "1", "SPA.sparse.minor": "0", "SPA.sparse.name": "a", "SPA.sparse.realsize": "1024"}
	body := fmt.Sprintf("%-512s", "1\n512\n4\n") + "text"
	old := map[string]string{"SPA.sparse.size": "1024", "SPA.sparse.numblocks": "1", "SPA.sparse.map": "512,4"}
	return []hostile{
		{"sparse file", other(pax(tar.TypeReg, sparse, strings.ReplaceAll(body, " ", "\x00"))), "is sparse"},
		{"sparse file of version 0.1", other(pax(tar.TypeReg, old, "text")), "is sparse"},
		{"sparse file, compressed", compress(t, other(pax(tar.TypeReg, old, "text")), gz), "is sparse"},
		{"sparse files from here on", other(pax(tar.TypeXGlobalHeader, old, "")), "is sparse"},
		{"another size from here on", pax(tar.TypeXGlobalHeader, map[string]string{"size": "0"}, ""), "says where all that follow are"},
		{"another name from here on", pax(tar.TypeXGlobalHeader, map[string]string{"path": "../a"}, ""), "says where all that follow are"},
	}
}

// directories of zip archives are found by Python where Go does not look.
func directories(t testing.TB) []hostile {
	le := binary.LittleEndian
	const says = "with a directory that Python and Go find at different places"
	cut := append([]byte("x"), formattest.Zipped(t, "a", call)...)
	cut[len(cut)-2] = 5
	moved := append([]byte{}, cut...)
	le.PutUint32(moved[len(moved)-6:], le.Uint32(moved[len(moved)-6:])+1)

	decoy, found := formattest.Zipped(t, "a", "text"), formattest.Zipped(t, "a", call) // the offset leads to one, the size to the other
	two := append(bytes.Repeat([]byte(" "), len(found)-len(decoy)), decoy...)
	two = append(two, found...)
	le.PutUint32(two[len(two)-6:], uint32(bytes.Index(two, []byte("PK\x01\x02"))))

	plain, end := found[:len(found)-22], found[len(found)-22:]
	hidden := append(append([]byte{}, decoy[:len(decoy)-22]...), plain...)
	from := len(hidden) - int(le.Uint32(end[12:]))
	record := make([]byte, 56)
	copy(record, "PK\x06\x06\x2c")
	record[24], record[32] = 1, 1
	le.PutUint64(record[40:], uint64(le.Uint32(end[12:])))
	le.PutUint64(record[48:], uint64(from-len(decoy)+22))
	locator := make([]byte, 20)
	copy(locator, "PK\x06\x07")
	le.PutUint64(locator[8:], uint64(len(hidden)))
	locator[16] = 1
	hidden = append(append(hidden, record...), locator...)
	small := append([]byte{}, decoy[len(decoy)-22:]...)
	le.PutUint32(small[12:], uint32(len(hidden)-bytes.Index(hidden, []byte("PK\x01\x02"))))
	return []hostile{
		{"zip behind a byte with a comment that is cut", cut, says},
		{"zip whose offset counts the byte, with a comment that is cut", moved, says},
		{"zip of two directories", two, says},
		{"zip of a small and a large directory", append(hidden, small...), says},
	}
}

// zipEntry makes an archive of one entry.
func zipEntry(t testing.TB, h zip.FileHeader, body string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	h.CompressedSize64, h.UncompressedSize64, h.CRC32 = uint64(len(body)), uint64(len(body)), crc32.ChecksumIEEE([]byte(body))
	f, err := w.CreateRaw(&h)
	if err == nil {
		_, err = f.Write([]byte(body))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// renamed gives an entry another name of the same length, which Go's writer would not write.
func renamed(archive []byte, from, to string) []byte {
	return bytes.ReplaceAll(archive, []byte(from), []byte(to))
}

// folderOfJava is what the library of Java writes for a folder: a compressed stream of no bytes.
func folderOfJava(t testing.TB) []byte {
	t.Helper()
	archive := method(renamed(zipEntry(t, zip.FileHeader{Name: "a_"}, "\x03\x00"), "a_", "a/"), zip.Deflate)
	binary.LittleEndian.PutUint32(archive[central(archive)+16:], 0)
	return sized(archive, 0)
}
