"""Makes the Parquet files beside it: python make.py, with pyarrow."""

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 5
TABLE = pa.table(
    {
        "sku": ["a", "", "é", "7", "007"],
        "number": pa.array([1, -2, 2**62, 4, 5], pa.int64()),
        "f_double": pa.array([0.5, -1.25, 0.0, 3e9, 1e-3], pa.float64()),
        "f_float": pa.array([1, 2, 3, 4, 5], pa.float32()),
        "f_int": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "f_long": pa.array([10, 20, 30, 40, 50], pa.int64()),
        "list": [[1.0, 2.0]] * ROWS,
        "holes": pa.array([1.0, None, 3.0, 4.0, 5.0], pa.float32()),
    }
)
for codec in ("none", "snappy", "gzip", "zstd", "brotli"):
    pq.write_table(TABLE, f"{codec}.parquet", compression=codec, row_group_size=2)
