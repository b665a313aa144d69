"""xctrace, the recorder of Instruments: finds it, builds its command lines, reads its exports, explains its errors."""
