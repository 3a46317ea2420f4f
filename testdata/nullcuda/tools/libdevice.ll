; The device library of the null GPU has no function: what calls one keeps it as an external, and the null assembler resolves nothing.
source_filename = "libdevice"
