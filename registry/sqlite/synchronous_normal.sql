PRAGMA synchronous = NORMAL;
