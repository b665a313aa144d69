struct node { struct node *next; long value; char pad[48]; };
static inline long value_of(const struct node *n) {
    return n->value > 2 ? n->value * 3 : 1;
}
