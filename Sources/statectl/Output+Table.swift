extension Output {
    /// Writes rows whose cells stand below each other, escaped; the first row has the names of the columns.
    mutating func writeTable(_ rows: [[[UInt8]]]) {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        for row in rows {
            for (cell, width) in zip(row.dropLast(), widths) {
                writeEscaped(cell)
                write(String(repeating: " ", count: width - cell.count + 2))
            }
            writeEscaped(row[row.count - 1])
            write("\n")
        }
    }
}
