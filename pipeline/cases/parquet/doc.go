// Package parquet reads tables from Apache Parquet files: columns of numbers, booleans and texts, and of lists of numbers that
// are equally long in each row.
//
// Files come from strangers. So everything that a file claims is bounded before memory is taken for it: the
// footer and its lists, rows, columns, nesting, and what pages decompress and decode to. [Read] returns an error for any
// file that it does not understand, and turns panics into errors too.
//
// Not read are encrypted files, structs, maps, dates, decimals, 96-bit integers, and the rare codecs and encodings.
// Columns of these do no harm as long as they are not asked for.
//
// The format: https://parquet.apache.org/docs/file-format/ and the file parquet.thrift of apache/parquet-format.
package parquet
